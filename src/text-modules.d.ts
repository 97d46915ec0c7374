/** SQL and Lua are embedded by the build: see `scripts/text-modules.js`. */
declare module '*.sql' {
  const text: string
  export default text
}

declare module '*.lua' {
  const text: string
  export default text
}
