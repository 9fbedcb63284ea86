//! Fetches what is at an address.

use std::io::Read;
use std::time::Duration;
use std::{env, fs};
use ureq::tls::{PemItem, RootCerts, TlsConfig};

/// What is at an address, or why it cannot be had.
pub fn body(url: &str) -> Result<Box<dyn Read>, String> {
    let agent = ureq::Agent::config_builder()
        // A user may have a mirror without TLS; the known mirrors never redirect to one.
        .https_only(!url.starts_with("http://"))
        .tls_config(TlsConfig::builder().root_certs(trusted()).build())
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .timeout_per_read(Some(Duration::from_secs(30)))
        .user_agent(concat!("sumout/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let response = agent.get(url).call();
    let response = response.map_err(|error| error.to_string())?;
    Ok(Box::new(response.into_body().into_reader()))
}

/// Certificates to trust: Mozilla's list, which is in the program, or those in the file of `SSL_CERT_FILE`, as for curl.
/// Behind a company's proxy that opens every connection, only the latter work.
fn trusted() -> RootCerts {
    let file = env::var_os("SSL_CERT_FILE")
        .and_then(|path| fs::read(path).ok())
        .unwrap_or_default();
    let certificates = ureq::tls::parse_pem(&file).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() {
        RootCerts::WebPki
    } else {
        certificates.into()
    }
}
