// @ts-check
/** What was asked for cannot be measured: the runner says why, and how to ask. */
export class UsageError extends Error {}
