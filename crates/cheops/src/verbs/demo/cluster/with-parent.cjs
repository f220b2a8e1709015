// Loaded by Node before a service of the sample application, which so ends with the demo, also when
// that is killed: nobody else holds the other end of its input.
process.stdin.on("end", () => process.exit()).on("error", () => process.exit()).resume();
