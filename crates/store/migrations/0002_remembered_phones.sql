-- Phones this desk has worked with, by the phone's own serial, so that one can be chosen again without typing (issue 4).
-- An older build refuses a file of this version and leaves it as it is; no table of version 1 is changed.
CREATE TABLE remembered_phones (
    serial TEXT PRIMARY KEY CHECK (serial <> ''),
    model TEXT NOT NULL,
    android_version TEXT NOT NULL,
    -- As a person would type it: `192.168.0.20:5555`, `adb:SERIAL`.
    address TEXT NOT NULL CHECK (address <> ''),
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    -- Animation scales from before the doctor turned them off; NULL when they are as the owner left them.
    animations_before_json TEXT
);
