//! Where secrets live (D6): the operating system's credential store, one entry a name, never in `data/`.
//!
//! Without any credential store, secrets live for the session only and a banner says so. Tests inject a file outside `data/`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cmautobuy_protocol::auth::Session;
use cmautobuy_sync::SessionKeeper;

/// Named secrets. Blocking: called off the async threads, or before they start.
pub(crate) trait SecretStore: Send + Sync + std::fmt::Debug {
    fn get(&self, name: &str) -> Result<Option<String>, SecretError>;
    fn set(&self, name: &str, secret: &str) -> Result<(), SecretError>;
    fn delete(&self, name: &str) -> Result<(), SecretError>;
    /// Nothing survives the process.
    fn is_session_only(&self) -> bool {
        false
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("use the system's credential store")]
    Keyring(#[source] keyring_core::Error),
    #[error("use the secret file {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

const SERVICE: &str = "CMAutoBuy";

/// The system's own store.
#[derive(Debug)]
struct Keyring;

impl Keyring {
    fn entry(name: &str) -> Result<keyring_core::Entry, SecretError> {
        // `Local` on Windows: the default roams with a domain profile, and a key that travels defeats D6.
        #[cfg(windows)]
        let entry = keyring_core::Entry::new_with_modifiers(SERVICE, name, &HashMap::from([("persistence", "Local")]));
        #[cfg(not(windows))]
        let entry = keyring_core::Entry::new(SERVICE, name);
        entry.map_err(SecretError::Keyring)
    }
}

impl SecretStore for Keyring {
    fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        match Self::entry(name)?.get_password() {
            Ok(secret) => Ok(Some(secret)),
            Err(keyring_core::Error::NoEntry) => Ok(None),
            Err(error) => Err(SecretError::Keyring(error)),
        }
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        Self::entry(name)?.set_password(secret).map_err(SecretError::Keyring)
    }

    fn delete(&self, name: &str) -> Result<(), SecretError> {
        match Self::entry(name)?.delete_credential() {
            Ok(()) | Err(keyring_core::Error::NoEntry) => Ok(()),
            Err(error) => Err(SecretError::Keyring(error)),
        }
    }
}

/// For this session only.
#[derive(Debug, Default)]
pub(crate) struct InMemory(Mutex<HashMap<String, String>>);

impl InMemory {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SecretStore for InMemory {
    fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        Ok(self.map().get(name).cloned())
    }
    fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        self.map().insert(name.to_owned(), secret.to_owned());
        Ok(())
    }
    fn delete(&self, name: &str) -> Result<(), SecretError> {
        self.map().remove(name);
        Ok(())
    }
    fn is_session_only(&self) -> bool {
        true
    }
}

/// A plain file, for tests that restart a real process.
#[derive(Debug)]
struct InFile {
    path: PathBuf,
    lock: Mutex<()>,
}

impl InFile {
    fn load(&self) -> Result<HashMap<String, String>, SecretError> {
        let error = |source| SecretError::File { path: self.path.clone(), source };
        match std::fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| error(std::io::Error::other(e))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(e) => Err(error(e)),
        }
    }

    fn change(&self, edit: impl FnOnce(&mut HashMap<String, String>)) -> Result<(), SecretError> {
        let _one = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut map = self.load()?;
        edit(&mut map);
        let error = |source| SecretError::File { path: self.path.clone(), source };
        let bytes = serde_json::to_vec(&map).map_err(|e| error(std::io::Error::other(e)))?;
        let part = self.path.with_extension("part");
        std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &self.path)).map_err(error)
    }
}

impl SecretStore for InFile {
    fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        let _one = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.load()?.remove(name))
    }
    fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        self.change(|map| drop(map.insert(name.to_owned(), secret.to_owned())))
    }
    fn delete(&self, name: &str) -> Result<(), SecretError> {
        self.change(|map| drop(map.remove(name)))
    }
}

/// The store for this start: the injected file, memory for demo, else the system's, else memory.
pub(crate) fn open(file: Option<PathBuf>, demo: bool) -> Arc<dyn SecretStore> {
    if let Some(path) = file {
        return Arc::new(InFile { path, lock: Mutex::new(()) });
    }
    if demo {
        return Arc::new(InMemory::default());
    }
    match system_store() {
        Ok(()) => Arc::new(Keyring),
        Err(error) => {
            tracing::warn!(%error, "no credential store on this system; secrets live for this session only");
            Arc::new(InMemory::default())
        }
    }
}

#[cfg(target_os = "linux")]
fn system_store() -> Result<(), keyring_core::Error> {
    keyring_core::set_default_store(zbus_secret_service_keyring_store::Store::new()?);
    Ok(())
}

#[cfg(windows)]
fn system_store() -> Result<(), keyring_core::Error> {
    keyring_core::set_default_store(windows_native_keyring_store::Store::new()?);
    Ok(())
}

#[cfg(not(any(target_os = "linux", windows)))]
fn system_store() -> Result<(), keyring_core::Error> {
    Err(keyring_core::Error::NoDefaultStore)
}

/// Keeps the login of one server in the credential store.
#[derive(Debug)]
pub(crate) struct LoginKeeper {
    pub(crate) secrets: Arc<dyn SecretStore>,
    pub(crate) name: Mutex<String>,
}

impl LoginKeeper {
    /// One entry per installation and server (D6).
    pub(crate) fn entry_name(device: cmautobuy_protocol::DeviceId, base_url: &str) -> String {
        format!("login:{device}:{base_url}")
    }

    fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_name(&self, name: String) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

impl SessionKeeper for LoginKeeper {
    fn load(&self) -> Option<Session> {
        let text = match self.secrets.get(&self.name()) {
            Ok(text) => text?,
            Err(error) => {
                tracing::warn!(%error, "stored login not readable; log in again");
                return None;
            }
        };
        serde_json::from_str(&text).inspect_err(|_| tracing::warn!("stored login has another shape; log in again")).ok()
    }

    fn save(&self, session: &Session) {
        let Ok(text) = serde_json::to_string(session) else { return };
        if let Err(error) = self.secrets.set(&self.name(), &text) {
            tracing::warn!(%error, "login not kept; it lasts for this session");
        }
    }

    fn clear(&self) {
        if let Err(error) = self.secrets.delete(&self.name()) {
            tracing::warn!(%error, "stored login not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_keeps_replaces_and_forgets() {
        let dir = tempfile::tempdir().expect("temp dir");
        let file = InFile { path: dir.path().join("secrets.json"), lock: Mutex::new(()) };
        for store in [&InMemory::default() as &dyn SecretStore, &file] {
            assert_eq!(store.get("a").expect("readable"), None, "{store:?}: nothing is there at first");
            store.set("a", "一").expect("set");
            store.set("a", "二").expect("set again");
            store.set("b", "x").expect("set another");
            assert_eq!(store.get("a").expect("readable").as_deref(), Some("二"), "{store:?}: the last value counts");
            store.delete("a").expect("delete");
            store.delete("a").expect("deleting twice is fine");
            assert_eq!(store.get("a").expect("readable"), None, "{store:?}: forgotten");
            assert_eq!(store.get("b").expect("readable").as_deref(), Some("x"), "{store:?}: the others stay");
        }
    }
}
