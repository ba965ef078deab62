// What the report needs of Apache ECharts: `make charts` bundles it into echarts.min.js.
import * as core from "echarts/core";
import { BarChart, CustomChart, GraphChart, ScatterChart } from "echarts/charts";
import {
  DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent,
} from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

core.use([
  BarChart, CustomChart, GraphChart, ScatterChart,
  DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent,
  CanvasRenderer,
]);

export const { init, version } = core;
