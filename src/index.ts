export * from './time/index.js'
