//! adbd's side of the ADB protocol over TCP: packets, keys, streams and services.
//! It decides nothing about the phone; commands go to the shell, files to the phone.

pub(crate) mod auth;
mod connection;
mod services;
mod sync;
mod wire;

pub(crate) use connection::serve;
pub(crate) use services::Pipe;
