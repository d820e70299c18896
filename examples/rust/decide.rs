//! Decides with an agent that manul has saved: `decide FILE.manul`.
//!
//!     rustc decide.rs -L FOLDER_OF_LIBMANUL -l manul

use std::ffi::{c_char, c_double, c_int, c_void, CStr};

#[repr(C)]
struct Error {
    sentence: [c_char; 512],
    field: [c_char; 128],
}

#[repr(C)]
struct Context {
    json: *const c_char,
    row: *const c_double,
    size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    value: c_double,
    option: *const c_char,
    density: c_double,
}

#[repr(C)]
struct Decision {
    number: u64,
    density: c_double,
    floor: c_double,
    low: c_double,
    high: c_double,
    size: usize,
    values: [Value; 16],
}

extern "C" {
    fn manul_open(bytes: *const c_void, size: usize, error: *mut Error) -> *mut c_void;
    fn manul_free(agent: *mut c_void);
    fn manul_decide(
        agent: *mut c_void,
        context: Context,
        within: *const c_char,
        seed: *const u64,
        decision: *mut Decision,
        error: *mut Error,
    ) -> c_int;
}

/// An agent, which is freed when it is dropped.
struct Agent(*mut c_void);

fn sentence(error: &Error) -> String {
    unsafe { CStr::from_ptr(error.sentence.as_ptr()) }.to_string_lossy().into_owned()
}

impl Agent {
    fn open(bytes: &[u8]) -> Result<Agent, String> {
        let mut error = Error { sentence: [0; 512], field: [0; 128] };
        let agent = unsafe { manul_open(bytes.as_ptr().cast(), bytes.len(), &mut error) };
        if agent.is_null() { Err(sentence(&error)) } else { Ok(Agent(agent)) }
    }

    fn decide(&self, context: &str) -> Result<Decision, String> {
        let mut error = Error { sentence: [0; 512], field: [0; 128] };
        let nothing = Value { value: 0.0, option: std::ptr::null(), density: 0.0 };
        let mut decision =
            Decision { number: 0, density: 0.0, floor: 0.0, low: 0.0, high: 0.0, size: 0, values: [nothing; 16] };
        let json = Context { json: context.as_ptr().cast(), row: std::ptr::null(), size: context.len() };
        let failed = unsafe {
            manul_decide(self.0, json, std::ptr::null(), std::ptr::null(), &mut decision, &mut error)
        };
        if failed != 0 { Err(sentence(&error)) } else { Ok(decision) }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        unsafe { manul_free(self.0) }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: decide FILE.manul")?;
    let agent = Agent::open(&std::fs::read(path)?)?;
    for context in [r#"{"city": "Oslo", "age": 31}"#, r#"{"city": "Bergen", "age": null}"#] {
        let decision = agent.decide(context)?;
        println!("decision {}: {} with density {}", decision.number, decision.values[0].value, decision.density);
    }
    println!("{}", agent.decide("{\"city\": ").err().ok_or("a context that ends too early was accepted")?);
    Ok(())
}
