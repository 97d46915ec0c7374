export type { DstRule } from './cron/cron.js'
export { type Duration, describeDuration, durationMs } from './duration.js'
export { BelfryError, type TimeErrorCode } from './error.js'
export { type Instant, instantMs } from './instant.js'
export {
  type AtSpec,
  type CronSpec,
  type EverySpec,
  openTimeline,
  type ParsedTimeline,
  parseTimeline,
  type Timeline,
  type TimelineSpec,
  timeline,
} from './timeline.js'
