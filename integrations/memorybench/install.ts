/**
 * Put the akm provider into a checkout of memorybench:
 *
 *     bun install.ts PATH/TO/memorybench
 *
 * Copies akm/ to src/providers/akm and adds one line in each of four places. Running it again changes
 * nothing; a checkout that looks different is refused, with the line to add by hand.
 */
import { cpSync, existsSync, readFileSync, writeFileSync } from "fs"
import { dirname, join } from "path"
import { fileURLToPath } from "url"

interface Edit {
    file: string
    there: RegExp
    at: RegExp
    make: (found: string) => string
    byHand: string
}

const EDITS: Edit[] = [
    {
        file: "src/types/provider.ts",
        there: /ProviderName[^\n]*"akm"/,
        at: /export type ProviderName =[^\n]*/,
        make: found => `${found} | "akm"`,
        byHand: 'add "akm" to the type ProviderName',
    },
    {
        file: "src/providers/index.ts",
        there: /import \{ AkmProvider \}/,
        at: /import [^\n]* from "\.\/[^\n]*\n(?![\s\S]*import [^\n]* from "\.\/)/,
        make: found => `${found}import { AkmProvider } from "./akm"\n`,
        byHand: 'import { AkmProvider } from "./akm"',
    },
    {
        file: "src/providers/index.ts",
        there: /akm: AkmProvider/,
        at: /Record<ProviderName, new \(\) => Provider> = \{\n/,
        make: found => `${found}    akm: AkmProvider,\n`,
        byHand: "add akm: AkmProvider to the providers",
    },
    {
        file: "src/utils/config.ts",
        there: /case "akm":/,
        at: /function getProviderConfig[\s\S]*?switch \(provider\) \{\n/,
        make: found => `${found}        case "akm":\n            return { apiKey: "" }\n`,
        byHand: 'let getProviderConfig("akm") return { apiKey: "" }',
    },
]

const target = process.argv[2]
if (!target || !existsSync(join(target, "src/providers/index.ts"))) {
    console.error("usage: bun install.ts PATH/TO/memorybench (a checkout with src/providers)")
    process.exit(2)
}
const texts = new Map<string, string>()
for (const edit of EDITS) {
    const path = join(target, edit.file)
    const text = texts.get(path) ?? readFileSync(path, "utf8")
    if (edit.there.test(text)) continue
    if (!edit.at.test(text)) {
        console.error(`${path}: does not look as expected, nothing was changed. By hand: ${edit.byHand}`)
        process.exit(1)
    }
    texts.set(path, text.replace(edit.at, edit.make))
}
for (const [path, text] of texts) writeFileSync(path, text)
cpSync(join(dirname(fileURLToPath(import.meta.url)), "akm"), join(target, "src/providers/akm"), { recursive: true })
console.log(`akm provider in ${join(target, "src/providers/akm")}, ${texts.size} files changed`)
