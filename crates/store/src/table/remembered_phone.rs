//! `remembered_phones`: phones this desk has worked with, by their own serial.
//!
//! Known roads to a phone, never what a task is bound to: that is in the run's own row (D19).

use cmautobuy_protocol::WireTime;
use rusqlite::{Row, params};

use crate::codec::parsed;
use crate::{Reader, StoreError, Tx};

/// A phone as it was last seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RememberedPhone {
    pub serial: String,
    pub model: String,
    pub android_version: String,
    /// As a person would type it.
    pub address: String,
    pub first_seen_at: WireTime,
    pub last_seen_at: WireTime,
    /// Animation scales from before the doctor turned them off, window / transition / animator; `None` inside was unset.
    pub animations_before: Option<[Option<String>; 3]>,
}

/// A phone that is connected now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhoneSeen {
    pub serial: String,
    pub model: String,
    pub android_version: String,
    pub address: String,
}

const COLUMNS: &str = "serial, model, android_version, address, first_seen_at, last_seen_at, animations_before_json";

fn phone(row: &Row<'_>) -> Result<RememberedPhone, StoreError> {
    let animations: Option<String> = row.get("animations_before_json")?;
    Ok(RememberedPhone {
        serial: row.get("serial")?,
        model: row.get("model")?,
        android_version: row.get("android_version")?,
        address: row.get("address")?,
        first_seen_at: parsed(row, "first_seen_at")?,
        last_seen_at: parsed(row, "last_seen_at")?,
        animations_before: animations.map(|json| serde_json::from_str(&json)).transpose()?,
    })
}

impl Reader<'_> {
    /// The one seen last comes first.
    pub fn phone_list(&self) -> Result<Vec<RememberedPhone>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM remembered_phones ORDER BY last_seen_at DESC, serial");
        self.conn.prepare_cached(&sql)?.query_and_then([], phone)?.collect()
    }

    pub fn phone_get(&self, serial: &str) -> Result<Option<RememberedPhone>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM remembered_phones WHERE serial = ?1");
        self.conn.prepare_cached(&sql)?.query_and_then(params![serial], phone)?.next().transpose()
    }
}

impl Tx<'_> {
    /// Remembers it, or that it was seen again, by the road of today.
    pub fn phone_seen(&mut self, seen: &PhoneSeen, now: WireTime) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "INSERT INTO remembered_phones (serial, model, android_version, address, first_seen_at, last_seen_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5) \
                 ON CONFLICT (serial) DO UPDATE SET model = excluded.model, android_version = excluded.android_version, \
                 address = excluded.address, last_seen_at = excluded.last_seen_at",
            )?
            .execute(params![seen.serial, seen.model, seen.android_version, seen.address, now.to_string()])?;
        Ok(())
    }

    /// Whether there was one to forget.
    pub fn phone_forget(&mut self, serial: &str) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM remembered_phones WHERE serial = ?1")?.execute(params![serial])? == 1)
    }

    /// Keeps what the owner had, or `None` once it is his again. Scales already kept stay: a second fix must not take the zeros of the
    /// first for the owner's wish.
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] for a phone that was never seen.
    pub fn phone_animations(&mut self, serial: &str, before: Option<&[Option<String>; 3]>) -> Result<(), StoreError> {
        let json = before.map(serde_json::to_string).transpose()?;
        let changed = self
            .conn
            .prepare_cached(
                "UPDATE remembered_phones SET animations_before_json = \
                 CASE WHEN ?2 IS NULL THEN NULL ELSE coalesce(animations_before_json, ?2) END WHERE serial = ?1",
            )?
            .execute(params![serial, json])?;
        if changed == 1 { Ok(()) } else { Err(StoreError::NoSuch { what: "phone", id: serial.to_owned() }) }
    }
}
