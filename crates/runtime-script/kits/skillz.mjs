// `import skillz from "skillz"` and `import { memory, call } from "skillz"`; see `skillz.cjs`.
import skillz from "./skillz.cjs";

export default skillz;
export const { SkillzError, Declined, memory, call, tools, resources, roots, ask, sample, log, progress, stream, reply } = skillz;
