//! AVX-512 compress instructions, which move the values with mask bit 1 to the front of a register.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm512_loadu_epi8, _mm512_loadu_epi16, _mm512_loadu_epi32, _mm512_loadu_epi64,
    _mm512_maskz_compress_epi8, _mm512_maskz_compress_epi16, _mm512_maskz_compress_epi32,
    _mm512_maskz_compress_epi64, _mm512_storeu_epi8, _mm512_storeu_epi16, _mm512_storeu_epi32,
    _mm512_storeu_epi64,
};

#[cfg(target_arch = "x86_64")]
pub(super) const WORD: usize = 64;

pub(super) trait Compress: Copy + Default {
    /// Stores the values whose bit in `bits` is 1, without gaps, from `to` on. The values after
    /// them are unspecified.
    ///
    /// # Safety
    /// `to` must have capacity for [`WORD`] values. The CPU must support AVX-512 F/VL/DQ/BW, and
    /// VBMI2 for types narrower than 32 bits.
    #[cfg(target_arch = "x86_64")]
    unsafe fn compress(values: &[Self; WORD], bits: u64, to: *mut Self);
}

macro_rules! compress {
    ($t:ty, $mask:ty, $load:ident, $compress:ident, $store:ident) => {
        impl Compress for $t {
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn compress(values: &[Self; WORD], bits: u64, to: *mut Self) {
                const LANES: usize = <$mask>::BITS as usize;
                let mut at = 0;
                for i in 0..WORD / LANES {
                    #[allow(clippy::cast_possible_truncation, reason = "one register's bits")]
                    let mask = (bits >> (i * LANES)) as $mask;
                    // SAFETY: reads stay within `values`. Before each store, no more values were
                    // written than read, so the full-width store stays within `WORD` values.
                    unsafe {
                        let some = $load(values.as_ptr().add(i * LANES).cast());
                        $store(to.add(at).cast(), $compress(mask, some));
                    }
                    at += mask.count_ones() as usize;
                }
            }
        }
    };
}
compress!(u8, u64, _mm512_loadu_epi8, _mm512_maskz_compress_epi8, _mm512_storeu_epi8);
compress!(u16, u32, _mm512_loadu_epi16, _mm512_maskz_compress_epi16, _mm512_storeu_epi16);
compress!(u32, u16, _mm512_loadu_epi32, _mm512_maskz_compress_epi32, _mm512_storeu_epi32);
compress!(u64, u8, _mm512_loadu_epi64, _mm512_maskz_compress_epi64, _mm512_storeu_epi64);
