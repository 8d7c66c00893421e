-- Accounts (R26): kinds of users, permissions, warehouse grants, and what administrators changed.
-- An older build must not open a file of this version.

ALTER TABLE users ADD COLUMN kind TEXT NOT NULL DEFAULT 'PLATFORM' CHECK (kind IN ('PLATFORM', 'CUSTOMER'));

CREATE TABLE user_permissions (
    user_id    TEXT NOT NULL REFERENCES users (user_id),
    permission TEXT NOT NULL CHECK (permission IN ('platform:self-operated-analytics:list', 'platform:self-operated-analytics:sync')),
    PRIMARY KEY (user_id, permission)
) STRICT, WITHOUT ROWID;

CREATE TABLE warehouse_grants (
    user_id   TEXT NOT NULL REFERENCES users (user_id),
    account   TEXT NOT NULL CHECK (length(account) BETWEEN 1 AND 64),
    warehouse TEXT NOT NULL CHECK (length(warehouse) BETWEEN 1 AND 64),
    PRIMARY KEY (user_id, account, warehouse)
) STRICT, WITHOUT ROWID;

-- A customer never sees the analytics (R26), whatever the code does.
CREATE TRIGGER permission_of_customer BEFORE INSERT ON user_permissions
WHEN (SELECT kind FROM users WHERE user_id = NEW.user_id) <> 'PLATFORM'
BEGIN SELECT RAISE(ABORT, 'a CUSTOMER has no permission'); END;
CREATE TRIGGER grant_to_customer BEFORE INSERT ON warehouse_grants
WHEN (SELECT kind FROM users WHERE user_id = NEW.user_id) <> 'PLATFORM'
BEGIN SELECT RAISE(ABORT, 'a CUSTOMER has no grant'); END;
CREATE TRIGGER customer_with_permission BEFORE UPDATE OF kind ON users
WHEN NEW.kind <> 'PLATFORM' AND (EXISTS (SELECT 1 FROM user_permissions WHERE user_id = NEW.user_id)
                                 OR EXISTS (SELECT 1 FROM warehouse_grants WHERE user_id = NEW.user_id))
BEGIN SELECT RAISE(ABORT, 'a CUSTOMER has no permission and no grant'); END;

-- One row a change, for ever.
CREATE TABLE audit (
    entry_id TEXT PRIMARY KEY,
    at       TEXT NOT NULL,
    actor    TEXT NOT NULL,
    action   TEXT NOT NULL,
    target   TEXT NOT NULL,
    detail   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_target ON audit (target, entry_id);
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows are kept'); END;
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows are final'); END;

CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_device ON sessions (device_id) WHERE device_id IS NOT NULL;
