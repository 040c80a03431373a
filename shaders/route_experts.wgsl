// Selects the experts of a token with the USED largest keys (the lower id on ties, NaN last), and computes their shares:
// weights divided by the sum over all experts or, with RENORMALIZE, over the selected ones. One workgroup per token. A
// module of shared/routing has keys and weights, one of shared/expert_groups may leave out experts.
@group(0) @binding(B_logits) var<storage, read> logits: array<u32>; // [tokens, EXPERTS], bits of f32
@group(0) @binding(B_experts) var<storage, read_write> experts: array<u32>; // [tokens, USED]
@group(0) @binding(B_shares) var<storage, read_write> shares: array<f32>; // [tokens, USED]

var<workgroup> orders: array<u32, EXPERTS>;
var<workgroup> weights: array<f32, EXPERTS>; // shares before they are divided by their sum
var<workgroup> chosen: array<u32, USED>;

// A key that increases with the logit; 0 for NaN. Compilers may assume that there is no NaN, so only
// integers are compared.
fn order_of(bits: u32) -> u32 {
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0u;
    }
    // -0 equals +0.
    let negative = bits > 0x80000000u;
    return select(bits | 0x80000000u, ~bits, negative);
}

// The logit of a key; NaN stays NaN.
fn value_of(order: u32) -> f32 {
    return bitcast<f32>(select(~order, order & 0x7fffffffu, order >= 0x80000000u));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let token = workgroup.x;
    for (var expert = local; expert < EXPERTS; expert += WORKGROUP) {
        orders[expert] = routing_key(logits[token * EXPERTS + expert], expert);
    }
    workgroupBarrier();
    var largest = 0u;
    for (var expert = 0u; expert < EXPERTS; expert++) {
        largest = max(largest, orders[expert]);
    }
    leave_out_groups(local);
    for (var expert = local; expert < EXPERTS; expert += WORKGROUP) {
        let order = orders[expert];
        weights[expert] = routing_weight(logits[token * EXPERTS + expert], largest);
        // Ranks are a permutation for any logits, so every slot gets one expert.
        var rank = 0u;
        for (var other = 0u; other < EXPERTS; other++) {
            let before = orders[other] > order || (orders[other] == order && other < expert);
            rank += select(0u, 1u, before);
        }
        if (rank < USED) {
            chosen[rank] = expert;
        }
    }
    workgroupBarrier();
    for (var slot = local; slot < USED; slot += WORKGROUP) {
        var sum = EPS;
        if (RENORMALIZE) {
            for (var i = 0u; i < USED; i++) {
                sum += weights[chosen[i]];
            }
        } else if (SIGMOID) {
            sum = 1.0;
        } else {
            for (var expert = 0u; expert < EXPERTS; expert++) {
                sum += weights[expert];
            }
        }
        experts[token * USED + slot] = chosen[slot];
        let share = weights[chosen[slot]] / sum * SCALE;
        shares[token * USED + slot] = share * expert_scale(chosen[slot]);
    }
}
