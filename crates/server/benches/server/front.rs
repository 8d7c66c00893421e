//! A web service on a thread and a runtime of its own, until it is closed.

use std::future::Future;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::Fallible;

pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Fallible<()>>,
}

impl Front {
    /// `serve` gets the listener and what ends when it is time to stop.
    pub(crate) fn open<F>(serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F + Send + 'static) -> Fallible<Self>
    where
        F: Future<Output = Fallible<()>>,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(async { serve(TcpListener::from_std(listener)?, stopped).await })
        });
        Ok(Self { address, stop, thread })
    }

    pub(crate) fn close(self) -> Fallible<()> {
        // A server that has already ended says why below.
        let _ended = self.stop.send(());
        self.thread.join().map_err(|_| "the server's thread panicked")?
    }
}
