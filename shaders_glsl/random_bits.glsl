#version 460
// Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).

//! function lx_threefry_round
// Adds, rotates by `turn` to the left, mixes.
uvec2 lx_threefry_round(uvec2 x, uint turn) {
    uint sum = x.x + x.y;
    return uvec2(sum, (x.y << turn | x.y >> (32u - turn)) ^ sum);
}
//! function lx_threefry_rounds needs lx_threefry_round
uvec2 lx_threefry_rounds(uvec2 x, uvec4 turns, uvec2 added) {
    x = lx_threefry_round(x, turns.x);
    x = lx_threefry_round(x, turns.y);
    x = lx_threefry_round(x, turns.z);
    x = lx_threefry_round(x, turns.w);
    return x + added;
}
//! function lx_threefry needs lx_threefry_rounds
uvec2 lx_threefry(uint k0, uint k1, uint c0, uint c1) {
    const uvec4 even = uvec4(13u, 15u, 26u, 6u), odd = uvec4(17u, 29u, 16u, 24u);
    uint k2 = k0 ^ k1 ^ 0x1bd11bdau;
    uvec2 x = uvec2(c0 + k0, c1 + k1);
    x = lx_threefry_rounds(x, even, uvec2(k1, k2 + 1u));
    x = lx_threefry_rounds(x, odd, uvec2(k2, k0 + 2u));
    x = lx_threefry_rounds(x, even, uvec2(k0, k1 + 3u));
    x = lx_threefry_rounds(x, odd, uvec2(k1, k2 + 4u));
    return lx_threefry_rounds(x, even, uvec2(k2, k0 + 5u));
}
//! function lx_threefry_first needs lx_threefry
uint lx_threefry_first(uint k0, uint k1, uint c0, uint c1) {
    return lx_threefry(k0, k1, c0, c1).x;
}
//! function lx_threefry_second needs lx_threefry
uint lx_threefry_second(uint k0, uint k1, uint c0, uint c1) {
    return lx_threefry(k0, k1, c0, c1).y;
}
//! function lx_threefry_both needs lx_threefry
// Both words in one, by xor.
uint lx_threefry_both(uint k0, uint k1, uint c0, uint c1) {
    uvec2 words = lx_threefry(k0, k1, c0, c1);
    return words.x ^ words.y;
}
//! end

void main() {}
