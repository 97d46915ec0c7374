import type { Plugin } from 'vitest/config'

export declare function workerEntries(): Plugin
