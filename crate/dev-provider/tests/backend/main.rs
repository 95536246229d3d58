//! The backend of the streaming document, asked as a page asks it, in virtual time; and by a client of other people.

mod faults;
mod reader;
mod streams;
mod unary;
