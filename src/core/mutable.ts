/** What is read-only for others, for whoever makes it. */
export type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] }
