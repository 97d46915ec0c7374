import { defineConfig } from 'vitest/config'

/** Chaos brings many processes of its own and measures time: one at a time, and beside nothing else. */
export default defineConfig({
  test: {
    include: ['test/chaos/**/*.test.js'],
    maxWorkers: 1,
    fileParallelism: false,
    globalSetup: ['test/servers/temporary-folder.ts', 'test/servers/setup.ts'],
  },
})
