//! The server from outside: the router is driven as a `tower::Service` with a clock that stands still. Rule numbers in the test names are
//! those of T-205 and of the decisions D3-D19.

mod accounts;
mod admin;
mod auth;
mod bad_input;
mod bad_socket;
mod claim;
mod device;
mod doors;
mod error_codes;
mod import;
mod lifecycle;
mod openapi;
mod ops;
mod processes;
mod results;
mod resume;
mod rules;
mod secrets;
mod socket;
mod tasks;
mod tls;
mod world;
