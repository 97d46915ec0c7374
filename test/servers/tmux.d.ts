export function tmuxProgram(): string
