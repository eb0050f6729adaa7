// The libraries of the console, as one module.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
export { h, render, Fragment } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "preact/hooks";
