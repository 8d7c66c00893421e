//! Pages and flows on small invented trees, without a socket.

mod flow;
mod pages;
mod support;
