export async function resize() {}
