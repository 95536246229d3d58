//! What every artefact shares on its way to and from JavaScript: plain objects, options, errors.

pub mod object;
pub mod options;
pub mod thrown;
