export { Lifeline } from './lifeline.js'
export { type ManualClock, manualClock } from './manual-clock.js'
export { createTestBelfry, type TestBelfry, type TestOptions } from './test-belfry.js'
