//! Parsing of chat requests.
