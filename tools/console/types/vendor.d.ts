// The types of functions/console/static/vendor.js. A template has no type: htm reads it when it is drawn.
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
export { render } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
