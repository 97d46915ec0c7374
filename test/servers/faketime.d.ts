export function wrongClock(skewMs: number): Record<string, string>
export function wrongServerClock(skewMs: number): Record<string, string>
export function clearAfter(pid: number): void
