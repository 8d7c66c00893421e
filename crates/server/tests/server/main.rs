//! The server from outside: the router is driven as a `tower::Service` with a clock that stands still. Rule numbers in the test names are
//! those of T-205 and of the decisions D3-D19.

mod admin;
mod auth;
mod claim;
mod device;
mod doors;
mod lifecycle;
mod results;
mod resume;
mod secrets;
mod socket;
mod world;
