/** Paths of properties in a payload: `region`, and `user.id` for nested objects. */

/** How deep types of nested objects are followed. Deeper paths are any text that begins with a known one. */
type Depth = [never, 0, 1, 2]

/** Any text when the payload's type says nothing about its properties. */
export type PathOf<Payload, Levels extends number = 3> = [Payload] extends [never]
  ? string
  : [Payload] extends [object]
    ? Payload extends readonly unknown[]
      ? string
      : string extends keyof Payload
        ? string
        : PathsIn<Payload, Levels>
    : string

type PathsIn<Payload, Levels extends number> = {
  [Key in keyof Payload & string]:
    | Key
    | (Levels extends 0
        ? `${Key}.${string}`
        : NonNullable<Payload[Key]> extends object
          ? `${Key}.${PathOf<NonNullable<Payload[Key]>, Depth[Levels]>}`
          : never)
}[keyof Payload & string]
