//! Selects an instruction set for the kernels by the CPU and the variable `SERRATE_SIMD`.

use std::env;
use std::ffi::OsStr;
use std::sync::LazyLock;

const VARIABLE: &str = "SERRATE_SIMD";

/// Instruction sets that kernels are compiled for; a CPU that supports one supports all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimdLevel {
    /// Only instructions that every CPU of the compilation target supports.
    Scalar,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// AVX-512 F, VL, DQ and BW (and VBMI2 if the CPU has it), and the instructions of `Avx2`.
    Avx512,
}

impl SimdLevel {
    const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn detect_level() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            match (avx2, avx512) {
                (true, true) => return Self::Avx512,
                (true, false) => return Self::Avx2,
                (false, _) => {}
            }
        }
        Self::Scalar
    }
}

/// Returns the level that `value` names. Without `value`, returns `highest`, the level of the CPU.
/// Returns `highest` with a warning if `value` is unknown or names a higher level.
fn choose_level(value: Option<&OsStr>, highest: SimdLevel) -> (SimdLevel, Option<String>) {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return (highest, None) };
    let names = SimdLevel::ALL.map(SimdLevel::name).join(", ");
    let reason = match SimdLevel::ALL.into_iter().find(|level| value == level.name()) {
        Some(level) if level <= highest => return (level, None),
        Some(_) => "this CPU does not have it".to_owned(),
        None => format!("expected {names} or no value"),
    };
    let used = highest.name();
    (highest, Some(format!("{VARIABLE} is {value:?}, but {reason}; kernels use {used}")))
}

static LEVEL: LazyLock<SimdLevel> = LazyLock::new(|| {
    let (level, warning) =
        choose_level(env::var_os(VARIABLE).as_deref(), SimdLevel::detect_level());
    if let Some(warning) = warning {
        // Print the warning, because the kernel that initializes the level may have no way to
        // return it.
        eprintln!("warning: {warning}");
    }
    level
});

/// Evaluates an expression in a function compiled for AVX2 if the CPU supports it, otherwise in the
/// surrounding function. `#[inline(always)]` functions in the expression are compiled twice. The
/// macro may return from the surrounding function, so it must be the last expression there.
///
/// The syntax is `fn[generics](arguments) -> result = expression`; the expression can use only
/// these generics and arguments. `::[..]` after the generics is a turbofish for those that the
/// arguments do not determine. `else` gives a different expression for CPUs without AVX2.
macro_rules! for_avx2 {
    (
        fn[$($g:tt)*]$(::[$($c:tt)*])?($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)? = $body:expr
    ) => {
        $crate::kernels::simd::for_avx2!(
            fn[$($g)*]$(::[$($c)*])?($($a: $t),*) $(-> $r)? = $body, else $body
        )
    };
    (
        fn[$($g:tt)*]$(::[$($c:tt)*])?($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)? = $wide:expr,
        else $other:expr
    ) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn run_avx2<$($g)*>($($a: $t),*) $(-> $r)? {
                $wide
            }
            if $crate::kernels::simd::has_avx2() {
                // SAFETY: `has_avx2` checked that the CPU supports the features that the function
                // enables.
                return unsafe { run_avx2$(::<$($c)*>)?($($a),*) };
            }
        }
        $other
    }};
}
pub(crate) use for_avx2;

/// Returns the value of the expression, compiled for AVX-512, from the surrounding function, if
/// `$condition` holds and the CPU supports AVX-512; otherwise does nothing. The expression can use
/// `$token`, an [`Avx512`]. The syntax is the same as in [`for_avx2`].
macro_rules! return_avx512 {
    (
        if $condition:expr, $token:ident:
        fn[$($g:tt)*]$(::[$($c:tt)*])?($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)? = $body:expr
    ) => {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(
                enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            #[allow(unused_variables)]
            fn run_avx512<$($g)*>($token: $crate::kernels::simd::Avx512, $($a: $t),*) $(-> $r)? {
                $body
            }
            if $condition && let Some(token) = $crate::kernels::simd::Avx512::new_if_available() {
                // SAFETY: `Avx512::new_if_available` returned a token, so the CPU has all enabled
                // features.
                return unsafe { run_avx512$(::<$($c)*>)?(token, $($a),*) };
            }
        }
    };
}
pub(crate) use return_avx512;

/// Returns whether kernels use AVX2. Some loops are compiled a second time for AVX2, because the
/// default x86-64 target has only 128-bit registers.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    *LEVEL >= SimdLevel::Avx2
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    *LEVEL >= SimdLevel::Avx512
}

/// Returns whether kernels use AVX-512 VBMI2, which compresses 8-bit and 16-bit lanes by masks.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_vbmi2() -> bool {
    // This is cheap: the standard library detects the features once and caches them.
    has_avx512() && is_x86_feature_detected!("avx512vbmi2")
}

/// Proof that the CPU supports AVX2: only functions compiled for AVX2 can create it without
/// `unsafe`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(crate) fn new() -> Self {
        Self(())
    }

    #[cfg(test)]
    pub(crate) fn try_new() -> Option<Self> {
        has_avx2().then_some(Self(()))
    }

    /// Packs the bits of `word` at the set bits of `mask`: `0b1010` and `0b0110` give `0b01`.
    #[cfg(feature = "parquet")]
    #[inline(always)]
    pub(crate) fn gather_bits(self, word: u64, mask: u64) -> u64 {
        // SAFETY: a token exists only on CPUs with BMI2, which `has_avx2` includes.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    /// Packs 64 bytes that are 0 or 1 into the bits of a word, the first byte into the lowest bit.
    #[inline(always)]
    pub(crate) fn pack_bytes(self, bytes: &[u8; 64]) -> u64 {
        // SAFETY: a token exists only on CPUs with AVX2.
        unsafe { pack_bytes_avx2(bytes) }
    }

    /// Returns two bit masks with one bit per word: which words equal `wanted` after a shift right
    /// by `SHIFT`, and which words are 0.
    #[inline(always)]
    pub(crate) fn find_words<const SHIFT: i32>(self, words: &[u64; 8], wanted: u64) -> (u32, u32) {
        // SAFETY: a token exists only on CPUs with AVX2.
        unsafe { find_words_avx2::<SHIFT>(words, wanted) }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn pack_bytes_avx2(bytes: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_slli_epi16};
    let half = |at: usize| {
        // SAFETY: both halves lie within the 64 bytes.
        let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().add(at).cast::<__m256i>()) };
        // `movemask` takes the highest bit of every byte, so shift the lowest bit to the highest.
        let bits = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes));
        u64::from(bits.cast_unsigned())
    };
    half(0) | half(32) << 32
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn find_words_avx2<const SHIFT: i32>(words: &[u64; 8], wanted: u64) -> (u32, u32) {
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_srli_epi64,
    };
    let wanted = _mm256_set1_epi64x(wanted.cast_signed());
    let half = |at: usize| {
        // SAFETY: `at` is 0 or 4, so four words from there on lie within the eight.
        let words = unsafe { _mm256_loadu_si256(words.as_ptr().add(at).cast::<__m256i>()) };
        let same = _mm256_cmpeq_epi64(_mm256_srli_epi64::<SHIFT>(words), wanted);
        let empty = _mm256_cmpeq_epi64(words, _mm256_setzero_si256());
        let bits = |lanes| _mm256_movemask_pd(_mm256_castsi256_pd(lanes)).cast_unsigned();
        (bits(same), bits(empty))
    };
    let ((same, empty), (more_same, more_empty)) = (half(0), half(4));
    (same | more_same << 4, empty | more_empty << 4)
}

/// Proof that the CPU supports AVX-512 F, VL, DQ and BW.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[inline]
    pub(crate) fn new_if_available() -> Option<Self> {
        has_avx512().then_some(Self(()))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_variable_limits_the_level() {
        let choose = |value: &str, highest| choose_level(Some(OsStr::new(value)), highest);
        for highest in SimdLevel::ALL {
            assert_eq!(choose_level(None, highest), (highest, None));
            assert_eq!(choose("", highest), (highest, None));
            for level in SimdLevel::ALL {
                let (found, warning) = choose(level.name(), highest);
                assert_eq!(found, level.min(highest));
                assert_eq!(warning.is_some(), level > highest);
            }
        }
        let (level, warning) = choose("AVX", SimdLevel::Avx2);
        assert_eq!(level, SimdLevel::Avx2);
        assert_eq!(
            warning.as_deref(),
            Some(
                "SERRATE_SIMD is \"AVX\", but expected scalar, avx2, avx512 or no value; kernels use avx2"
            )
        );
        let (_, warning) = choose("avx512", SimdLevel::Scalar);
        assert_eq!(
            warning.as_deref(),
            Some("SERRATE_SIMD is \"avx512\", but this CPU does not have it; kernels use scalar")
        );
    }

    /// Prints the level; [`every_process_reads_the_variable`] runs this test in new processes.
    #[test]
    fn the_level_of_this_process() {
        println!("level {}", LEVEL.name());
    }

    #[test]
    fn every_process_reads_the_variable() {
        let highest = SimdLevel::detect_level();
        let run = |value: &str| {
            let this = concat!(module_path!(), "::the_level_of_this_process");
            let (_, this) = this.split_once("::").unwrap();
            let program = env::current_exe().unwrap();
            let out = Command::new(program)
                .args([this, "--exact", "--nocapture"])
                .env(VARIABLE, value)
                .output()
                .unwrap();
            assert!(out.status.success(), "{out:?}");
            (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
        };
        for level in SimdLevel::ALL.into_iter().filter(|level| *level <= highest) {
            let (out, err) = run(level.name());
            assert!(out.contains(&format!("level {}\n", level.name())), "{out}");
            assert!(!err.contains("warning"), "{err}");
        }
        let (out, err) = run("fast");
        assert!(out.contains(&format!("level {}\n", highest.name())), "{out}");
        assert!(err.contains("warning: SERRATE_SIMD is \"fast\", but"), "{err}");
    }
}
