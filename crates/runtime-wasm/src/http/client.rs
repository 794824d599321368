//! The two clients: one that connects only to public addresses, and one for hosts that a tool's permissions name.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};

use super::address::is_public;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Where a client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To public addresses only.
    Public,
    /// To every address.
    Anywhere,
}

/// A name leads to nothing but private addresses.
#[derive(Debug, thiserror::Error)]
#[error("The name has no public address")]
pub(crate) struct NoPublicAddress;

/// Both clients, made when first needed, since reading the system's certificates takes a while.
#[derive(Debug, Default)]
pub(crate) struct HttpClients {
    public: OnceLock<Result<Client, String>>,
    anywhere: OnceLock<Result<Client, String>>,
}

impl HttpClients {
    pub(crate) fn get(&self, reach: Reach) -> Result<&Client, String> {
        let cell = match reach {
            Reach::Public => &self.public,
            Reach::Anywhere => &self.anywhere,
        };
        cell.get_or_init(|| client(reach)).as_ref().map_err(Clone::clone)
    }
}

fn client(reach: Reach) -> Result<Client, String> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(skillz_tls::client_config()?)
        .user_agent(concat!("skillz/", env!("CARGO_PKG_VERSION")))
        // Redirects are checked one by one, and a proxy would resolve names out of sight.
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT);
    if reach == Reach::Public {
        builder = builder.dns_resolver(Arc::new(PublicResolver));
    }
    builder.build().map_err(|error| format!("The HTTP client could not be made: {error}"))
}

/// Resolves names, and keeps what is public. The connection goes to exactly these addresses, so that a name cannot
/// change its mind between the check and the connection.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}
