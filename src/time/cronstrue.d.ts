declare module 'cronstrue/dist/cronstrue.min.js' {
  export { default } from 'cronstrue'
}
