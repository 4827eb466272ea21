//! MEDS event tables.
