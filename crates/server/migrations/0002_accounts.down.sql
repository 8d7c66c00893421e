DROP INDEX sessions_by_device;
DROP INDEX sessions_by_user;
DROP TABLE audit;
DROP TRIGGER customer_with_permission;
DROP TABLE warehouse_grants;
DROP TABLE user_permissions;
ALTER TABLE users DROP COLUMN kind;
