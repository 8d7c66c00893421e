//! The server's certificate: PEM files to a rustls configuration, TLS 1.2 or newer, with ring. Errors name the file and what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};

use crate::config::TlsFiles;

/// Why the server cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("read {what} {} (settings tls_certificate and tls_key); it must be a PEM file this user may read", path.display())]
    Read {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    #[error("certificate file {} holds no certificate", path.display())]
    Empty { path: PathBuf },
    #[error("use certificate {} with key {}; they must be a pair, the server's own certificate first in its file", certificate.display(), key.display())]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |source| TlsError::Read { what: "certificate", path: path.to_owned(), source };
    let chain: Vec<_> = CertificateDer::pem_file_iter(path).map_err(read)?.collect::<Result<_, _>>().map_err(read)?;
    if chain.is_empty() { Err(TlsError::Empty { path: path.to_owned() }) } else { Ok(chain) }
}

/// Reads both files and checks that they fit together.
pub(crate) fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = chain(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|source| TlsError::Read { what: "private key", path: files.key.clone(), source })?;
    let pair = |source| TlsError::Pair { certificate: files.certificate.clone(), key: files.key.clone(), source };
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(pair)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::ops) fn pair(dir: &Path, name: &str) -> TlsFiles {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a self-signed certificate");
        let files = TlsFiles { certificate: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) };
        std::fs::write(&files.certificate, made.cert.pem()).expect("write the certificate");
        std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("write the key");
        files
    }

    #[test]
    fn a_pair_loads_and_every_mistake_names_its_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (one, two) = (pair(dir.path(), "one"), pair(dir.path(), "two"));
        load(&one).expect("a certificate and its key must load");
        let mixed = TlsFiles { certificate: one.certificate.clone(), key: two.key.clone() };
        assert!(
            matches!(load(&mixed), Err(TlsError::Pair { .. })),
            "another certificate's key must be refused at start, not at a handshake"
        );
        let missing = TlsFiles { key: dir.path().join("none.key"), ..one.clone() };
        let said = load(&missing).expect_err("a missing key cannot load").to_string();
        assert!(said.contains("none.key"), "the error must name the missing file, it said: {said}");
        let swapped = TlsFiles { certificate: one.key.clone(), key: one.certificate.clone() };
        assert!(matches!(load(&swapped), Err(TlsError::Empty { .. })), "a key in place of the certificate must be refused as what it is");
    }
}
