//! pdd
