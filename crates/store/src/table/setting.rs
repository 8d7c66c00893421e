//! `app_settings` (03 §6): settings that are no secret, as JSON under `<group>.<name>`.

use cmautobuy_protocol::WireTime;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Reader, StoreError, Tx};

impl Reader<'_> {
    /// The value under `key`; `None` when it was never set.
    ///
    /// # Errors
    /// [`StoreError::Json`] when it is not a `T`; safety settings must then count as off (03 §6).
    pub fn setting_get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT value_json FROM app_settings WHERE setting_key = ?1")?;
        let text: Option<String> = statement.query_row(params![key], |row| row.get(0)).optional()?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    }
}

impl Tx<'_> {
    /// # Errors
    /// [`StoreError::Json`]; [`StoreError::Unfit`] for a key that is not `<group>.<name>`.
    pub fn setting_set(&mut self, key: &str, value: &impl Serialize, now: WireTime) -> Result<(), StoreError> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !key.split_once('.').is_some_and(|(group, name)| is_word(group) && is_word(name)) {
            return Err(StoreError::Unfit { column: "setting_key", detail: key.to_owned() });
        }
        self.conn
            .prepare_cached(
                "INSERT INTO app_settings (setting_key, value_json, updated_at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (setting_key) DO UPDATE SET value_json = excluded.value_json, updated_at = excluded.updated_at",
            )?
            .execute(params![key, serde_json::to_string(value)?, now.to_string()])?;
        Ok(())
    }
}
