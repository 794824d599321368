//! Arithmetic on vectors of the table's length, written so that the compiler makes SIMD code of it.

use crate::table::{DIMENSIONS, Vector};

/// Independent sums, so that the additions of one do not wait for those of another.
const LANES: usize = 16;
/// Shorter vectors count as zero, as the ranking's reference does.
const SMALLEST_LENGTH: f32 = 1e-9;

pub(crate) const ZERO: Vector = [0.0; DIMENSIONS];

/// The dot product.
pub(crate) fn dot(left: &Vector, right: &Vector) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (left, right) in left.chunks_exact(LANES).zip(right.chunks_exact(LANES)) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    sums.iter().sum()
}

/// Adds `factor` times `addend` to `target`.
pub(crate) fn add_scaled(target: &mut Vector, addend: &Vector, factor: f32) {
    for (target, addend) in target.iter_mut().zip(addend) {
        *target += addend * factor;
    }
}

/// The vector's length.
pub(crate) fn length(vector: &Vector) -> f32 {
    dot(vector, vector).sqrt()
}

/// The vector stretched to length 1; a zero vector stays zero.
pub(crate) fn unit(vector: &Vector) -> Vector {
    let length = length(vector);
    if length <= SMALLEST_LENGTH {
        return *vector;
    }
    vector.map(|value| value / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_vectors_have_length_one_and_zero_stays_zero() {
        let mut vector = ZERO;
        vector[3] = 3.0;
        vector[200] = -4.0;
        assert!((length(&vector) - 5.0).abs() < 1e-6);
        assert!((length(&unit(&vector)) - 1.0).abs() < 1e-6);
        assert!(length(&unit(&ZERO)) == 0.0);
        let mut sum = ZERO;
        add_scaled(&mut sum, &vector, 0.5);
        assert!((sum[200] + 2.0).abs() < 1e-6);
    }
}
