//! `identity`: which installation this is (D19) and which server it belongs to (D7). One row.

use cmautobuy_protocol::{DeviceId, ServerId, WireTime};
use rusqlite::{Connection, params};

use crate::codec::{parsed, parsed_opt};
use crate::{Reader, StoreError, Tx};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Made at the first start, never typed.
    pub device_id: DeviceId,
    /// `None` until the first login.
    pub server_id: Option<ServerId>,
}

/// What became of a wish to belong to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum BindServer {
    Bound,
    Already,
    /// Refuse the login: this data folder belongs to that server.
    Other(ServerId),
}

impl Reader<'_> {
    pub fn identity_get(&self) -> Result<Option<Identity>, StoreError> {
        read(self.conn)
    }
}

pub(crate) fn read(conn: &Connection) -> Result<Option<Identity>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT device_id, server_id FROM identity WHERE id = 1")?;
    let mut rows = statement
        .query_and_then([], |row| Ok(Identity { device_id: parsed(row, "device_id")?, server_id: parsed_opt(row, "server_id")? }))?;
    rows.next().transpose()
}

impl Tx<'_> {
    /// Makes `fresh` the device id unless there is one; answers the one that holds.
    pub fn identity_init(&mut self, fresh: DeviceId, now: WireTime) -> Result<Identity, StoreError> {
        self.conn
            .prepare_cached("INSERT INTO identity (id, device_id, created_at) VALUES (1, ?1, ?2) ON CONFLICT (id) DO NOTHING")?
            .execute(params![fresh.to_string(), now.to_string()])?;
        self.identity_get()?.ok_or_else(|| StoreError::NoSuch { what: "identity", id: "1".to_owned() })
    }

    /// Ties this store to a server for good (D7).
    ///
    /// # Errors
    /// [`StoreError::NoSuch`] before [`Tx::identity_init`].
    pub fn bind_server(&mut self, server: ServerId) -> Result<BindServer, StoreError> {
        let bound = self
            .conn
            .prepare_cached("UPDATE identity SET server_id = ?1 WHERE id = 1 AND server_id IS NULL")?
            .execute(params![server.to_string()])?;
        if bound == 1 {
            return Ok(BindServer::Bound);
        }
        let known = self.identity_get()?.and_then(|identity| identity.server_id);
        match known {
            Some(known) if known == server => Ok(BindServer::Already),
            Some(known) => Ok(BindServer::Other(known)),
            None => Err(StoreError::NoSuch { what: "identity", id: "1".to_owned() }),
        }
    }
}
