// Experts that are all chosen from.
fn leave_out_groups(local: u32) {}
