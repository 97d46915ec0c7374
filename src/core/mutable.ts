/** A type without `readonly`, for the code that builds the object. */
export type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] }
