// AMPHORA_PLANNER_LIB: the folder of libamphora-planner.a, if the linker does
// not find it.
fn main() {
    println!("cargo:rerun-if-env-changed=AMPHORA_PLANNER_LIB");
    if let Ok(folder) = std::env::var("AMPHORA_PLANNER_LIB") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=static=amphora-planner");
    println!("cargo:rustc-link-lib=m");
}
