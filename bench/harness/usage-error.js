// @ts-check
/** The arguments name nothing that can be measured; the message shows valid ones. */
export class UsageError extends Error {}
