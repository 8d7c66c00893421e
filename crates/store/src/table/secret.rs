//! `sealed_secrets`: long-lived secrets of this installation, such as the ADB key (D6). Only their sealed form is here.

use cmautobuy_protocol::WireTime;
use rusqlite::{Connection, OptionalExtension, params};

use crate::seal::Aad;
use crate::{Reader, StoreError, Tx};

impl Reader<'_> {
    /// The secret called `name`.
    ///
    /// # Errors
    /// [`StoreError::Seal`] when this computer's key does not open it.
    pub fn secret_get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT sealed FROM sealed_secrets WHERE name = ?1")?;
        let sealed: Option<Vec<u8>> = statement.query_row(params![name], |row| row.get(0)).optional()?;
        sealed.map(|blob| Ok(self.key.open(&blob, &Aad::Secret(name))?)).transpose()
    }
}

impl Tx<'_> {
    /// Seals `secret` under `name`, in place of what was there.
    pub fn secret_put(&mut self, name: &str, secret: &[u8], now: WireTime) -> Result<(), StoreError> {
        let sealed = self.key.seal(secret, &Aad::Secret(name));
        self.conn
            .prepare_cached(
                "INSERT INTO sealed_secrets (name, sealed, updated_at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at",
            )?
            .execute(params![name, sealed, now.to_string()])?;
        Ok(())
    }
}

/// Nothing sealed with an earlier key can be used again.
pub(crate) fn delete_all(conn: &Connection) -> Result<(), StoreError> {
    conn.execute("DELETE FROM sealed_secrets", [])?;
    Ok(())
}
