//! The backend of the streaming document, asked as a page asks it, in virtual time; and by a client of other people.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod foreign;
mod reader;
mod streams;
mod unary;
