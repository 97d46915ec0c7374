/** `belfry/time`: timelines for apps. The engine uses `src/time/` itself, which knows no clock. */
export * from '../../time/index.js'
export { isValid, type Timeline, timeline } from './timeline.js'
