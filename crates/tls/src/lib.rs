//! How every HTTP client of the server checks whom it talks to: one set of certificates, one provider of cryptography.
#![warn(missing_docs)]

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// A client's side of TLS, which trusts the certificates of the system, or those that come along where it has none. Reads
/// them from the disk.
///
/// # Errors
///
/// A sentence, where the library takes none of its own protocol versions.
pub fn client_config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS could not be set up: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
