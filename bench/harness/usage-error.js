// @ts-check
/** The arguments of the bench are invalid. The message says which are valid. */
export class UsageError extends Error {}
