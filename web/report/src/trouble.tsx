import type { Head } from "./data";
import { count } from "./numbers";
import type { Filter } from "./filter";
import { System } from "./system";

/** Percentiles of every stage, as numbers. */
export function StageTable({ head }: { head: Head }) {
  return (
    <details class="more">
      <summary>As numbers</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Percentiles by stage">
        <table>
          <thead>
            <tr>
              <th scope="col" class="first">
                System
              </th>
              <th scope="col" class="left">
                Stage
              </th>
              {["p50", "p95", "p99", "max"].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {head.times.map((line) => (
              <tr key={`${line.system}\n${line.stage}`}>
                <th scope="row" class="first">
                  <System head={head} name={line.system} />
                </th>
                <td class="left">{line.stage}</td>
                {line.texts.map((text, at) => (
                  <td key={at}>{text}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Why rows have no score, the most frequent reason first. */
export function Failures({ head, filterTo }: { head: Head; filterTo: (change: Partial<Filter>) => void }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Failures by reason">
      <table>
        <thead>
          <tr>
            <th scope="col" class="first">
              Reason
            </th>
            <th scope="col">Rows</th>
            <th scope="col" class="left">
              System
            </th>
            <th scope="col" class="left">
              Origin
            </th>
            <th scope="col" class="left">
              First message
            </th>
          </tr>
        </thead>
        <tbody>
          {head.failures.map((line) => (
            <tr key={`${line.what}\n${line.system}\n${line.origin}\n${line.reason}`}>
              <th scope="row" class="first">
                {line.what === "row" ? (
                  <button
                    type="button"
                    class="link"
                    title="Show these rows"
                    onClick={() => filterTo({ system: line.system, status: "failed", reason: line.reason })}
                  >
                    {line.reason}
                  </button>
                ) : (
                  line.reason
                )}
              </th>
              <td>{count(line.count)}</td>
              <td class="left">
                <System head={head} name={line.system} />
              </td>
              <td class="left">{line.origin}</td>
              <td class="left message">{line.message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
