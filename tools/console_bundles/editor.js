// The SQL editor: CodeMirror with Spark SQL and completion from the schema.
export { EditorView, basicSetup } from "codemirror";
export { EditorState, Compartment, Prec } from "@codemirror/state";
export { keymap, placeholder } from "@codemirror/view";
export { indentWithTab } from "@codemirror/commands";
export { sql, SQLDialect, StandardSQL } from "@codemirror/lang-sql";
export { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
export { tags } from "@lezer/highlight";
